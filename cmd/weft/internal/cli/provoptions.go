package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// optionFlag adds the flag for options of a provider. What they are, and which there are, is the provider's to say.
func optionFlag(cmd *cobra.Command, list *[]string) {
	cmd.Flags().StringArrayVarP(list, "option", "o", nil, "option of the provider, `KEY=VALUE`; may be given several times")
}

// parseOptions reads what was given. A key that is given twice is an error: one of the values would do nothing.
func parseOptions(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, o := range list {
		key, value, ok := strings.Cut(o, "=")
		if !ok || key == "" {
			return nil, usagef("--option %s: want KEY=VALUE", o)
		}
		if _, twice := m[key]; twice {
			return nil, usagef("--option %s is given twice", key)
		}
		m[key] = value
	}
	return m, nil
}
