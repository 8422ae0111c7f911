package cli

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/sst"
)

// withoutName refuses flags of params that are about a stream if there is none.
func withoutName(cmd *cobra.Command) error {
	for _, flag := range []string{"param", "attach", "timeout"} {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s is about a stream: %s needs its NAME then (see %s --help)", flag, cmd.Name(), cmd.CommandPath())
		}
	}
	return nil
}

// listParams prints every engine parameter that there is.
func listParams(env Env, asJSON bool) error {
	list := sst.ParamList()
	out := newOutput(env.Stdout)
	if asJSON {
		b, err := json.Marshal(map[string][]sst.ParamInfo{"params": list})
		if err != nil {
			return err
		}
		out.bytes(append(b, '\n'))
		return out.flush()
	}
	rows := [][]string{{"NAME", "SIDE", "DEFAULT", "MEANING"}}
	for _, p := range list {
		rows = append(rows, []string{p.Name, sideText(p.Sides), defaultText(p.Default), meaning(p)})
	}
	for _, line := range alignColumns(rows, len(rows[0])) {
		out.text(strings.TrimPrefix(line, "  ") + "\n")
	}
	return out.flush()
}

// sideText is short for a column.
func sideText(sides string) string {
	if sides == "writer and reader" {
		return "both"
	}
	return sides
}

func defaultText(value string) string {
	if value == "" {
		return "-"
	}
	return value
}

// meaning is the help of a parameter, with the words that there are to choose from.
func meaning(p sst.ParamInfo) string {
	if len(p.Values) < 2 {
		return p.Help
	}
	return p.Help + ": " + strings.Join(p.Values, ", ")
}
