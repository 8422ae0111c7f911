package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// names checks that a command got as many names as it has kinds of.
func names(kinds ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, list []string) error {
		see := fmt.Sprintf("(see %s --help)", cmd.CommandPath())
		if len(list) != len(kinds) {
			if len(kinds) == 0 {
				return usagef("%s takes no arguments %s", cmd.Name(), see)
			}
			hint := ""
			if len(list) > len(kinds) && cmd.Flags().Lookup("var") != nil {
				hint = fmt.Sprintf("; variables are chosen by -v, as in -v %s", list[len(list)-1])
			}
			return usagef("%s needs %s, got %s%s %s", cmd.Name(), strings.Join(kinds, " and "), plural(len(list), "argument"), hint, see)
		}
		for i, name := range list {
			if name == "" {
				return usagef("%s is empty %s", kinds[i], see)
			}
		}
		return nil
	}
}

// plural counts things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// flagError explains what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	return usagef("%s%s (see %s --help)", flagText(err), flagHint(cmd, err), cmd.CommandPath())
}

// flagText is the text of an error without the names of Go's functions.
func flagText(err error) string {
	text := err.Error()
	if short, ok := shorthand(err); ok && strings.HasPrefix(text, "unknown shorthand") {
		return "unknown flag -" + short
	}
	bad, isValue := errors.AsType[interface {
		error
		GetValue() string
	}](err)
	if !isValue {
		return text
	}
	// invalid argument "5" for "--timeout" flag: time: missing unit in duration "5"
	_, rest, _ := strings.Cut(text, " for \"")
	flag, rest, _ := strings.Cut(rest, "\" flag: ")
	value := bad.GetValue()
	switch {
	case strings.Contains(rest, "missing unit"):
		unit := "s"
		if flag == "--pause" {
			unit = "ms" // so many seconds are too many
		}
		return fmt.Sprintf("%s %s: a time needs a unit, as in %s%s", flag, value, value, unit)
	case strings.Contains(rest, "invalid duration"):
		return fmt.Sprintf("%s %q: want a time, as in 5s, 2m or 100ms", flag, value)
	case strings.Contains(rest, "ParseInt"):
		return fmt.Sprintf("%s %q: want a whole number", flag, value)
	case strings.Contains(rest, "ParseBool"):
		return fmt.Sprintf("%s %q: want true or false", flag, value)
	}
	return fmt.Sprintf("%s %q: %s", flag, value, rest)
}

// flagHint helps users of bpls, whose flags mean other things.
func flagHint(cmd *cobra.Command, err error) string {
	if short, ok := shorthand(err); !ok || !strings.HasPrefix(short, "d") {
		return ""
	}
	switch cmd.Name() {
	case "ls":
		return "; weft dump prints data"
	case "dump":
		return "; dump prints data without it"
	}
	return ""
}

// shorthand returns the letters of the flag that err is about.
func shorthand(err error) (string, bool) {
	short, ok := errors.AsType[interface {
		error
		GetSpecifiedShortnames() string
	}](err)
	if !ok {
		return "", false
	}
	return short.GetSpecifiedShortnames(), true
}

// unknown complains about a word that is none of cmd's commands.
func unknown(cmd *cobra.Command, word string) error {
	hint := ""
	if near := cmd.SuggestionsFor(word); word != "" && len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %s?", near[0])
	}
	return usagef("unknown command %q for %q%s (see %s --help)", word, cmd.CommandPath(), hint, cmd.CommandPath())
}

// onlyCommands is for commands that have nothing but subcommands.
func onlyCommands(cmd *cobra.Command, list []string) error {
	if len(list) > 0 {
		return unknown(cmd, list[0])
	}
	return nil
}

// knownShell is the same for completion: the name of one shell is like that of
// another.
func knownShell(cmd *cobra.Command, list []string) error {
	if len(list) == 0 {
		return nil
	}
	var shells []string
	for _, c := range cmd.Commands() {
		shells = append(shells, c.Name())
	}
	return usagef("no completion for the shell %q; there is one for %s", list[0], strings.Join(shells, ", "))
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// newHelp makes the help command: unlike cobra's, it fails for what is unknown.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, list []string) error {
			topic, rest, err := cmd.Root().Find(list)
			if err != nil || len(rest) > 0 {
				if topic == nil {
					topic = cmd.Root()
				}
				return unknown(topic, append(rest, list...)[0])
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// strictCompletion makes cobra's completion command refuse shells that it does
// not know.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Use = "completion SHELL"
			cmd.Args, cmd.RunE = knownShell, showHelp
		}
	}
}
