package cli

import "github.com/spf13/cobra"

func newPipe(env Env) *cobra.Command { return &cobra.Command{Use: "pipe"} }
func newDemo(env Env) *cobra.Command { return &cobra.Command{Use: "demo"} }
func newDemoWriter(env Env) *cobra.Command { return &cobra.Command{Use: "demo-writer"} }
func newDemoReader(env Env) *cobra.Command { return &cobra.Command{Use: "demo-reader"} }
