package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
)

// readerParams adds the flag for engine parameters of a reader, which means
// nothing for files.
func readerParams(cmd *cobra.Command, list *[]string) {
	cmd.Flags().StringArrayVarP(list, "param", "P", nil, "parameter of the reader of a stream, Key=Value, as in ADIOS2; may be given several times")
}

// parseParamList reads the values of a flag that takes Key=Value.
func parseParamList(flag string, list []string) (sst.Params, error) {
	m := map[string]string{}
	for _, p := range list {
		key, value, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			return sst.Params{}, usagef("%s %s: want Key=Value", flag, p)
		}
		m[key] = value
	}
	p, err := sst.ParseParams(m)
	if err != nil {
		return p, usageError{err}
	}
	return p, nil
}

// parseReaderParams is parseParamList for parameters of a reader.
func parseReaderParams(flag string, list []string) (sst.Params, error) {
	p, err := parseParamList(flag, list)
	if err != nil {
		return p, err
	}
	if _, err := p.Effective(sst.ReaderSide); err != nil {
		return p, usageError{err}
	}
	return p, nil
}

// iface is the interface that the session publishes.
func iface(p sst.Params) string {
	if p.ControlInterface != "" {
		return p.ControlInterface
	}
	return p.NetworkInterface
}
