package cli

import (
	"context"
	"log/slog"
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

// newSession opens the session of a command. What the programs of ADIOS2 in the
// same job read from the environment holds for it as well, after its own flags.
func newSession(ctx context.Context, log *slog.Logger, iface string) (*sst.Session, error) {
	cfg, err := sst.SessionConfig{Logger: log, NetworkInterface: iface, HandshakeGrace: handshakeGrace}.FromEnv("ADIOS2_")
	if err != nil {
		return nil, usageError{err}
	}
	return sst.NewSession(ctx, cfg)
}

// iface is the interface that the session publishes.
func iface(p sst.Params) string {
	if p.ControlInterface != "" {
		return p.ControlInterface
	}
	return p.NetworkInterface
}
