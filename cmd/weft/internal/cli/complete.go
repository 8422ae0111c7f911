package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/fabric"
)

// completeWords lets a shell complete a flag that takes one of some words.
func completeWords[T ~string](cmd *cobra.Command, flag string, words ...T) {
	list := make([]cobra.Completion, 0, len(words))
	for _, w := range words {
		list = append(list, cobra.Completion(w))
	}
	complete(cmd, flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

// completeProviders does that for the providers of this build.
func completeProviders(cmd *cobra.Command, flag string) {
	complete(cmd, flag, func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		infos, _ := fabric.Discover(cmd.Context(), fabric.Hints{Unusable: true}) // a shell wants no error
		for i := range infos {
			if name := infos[i].Provider; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag, or it has one
	}
}
