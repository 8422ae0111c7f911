package fabrictest

func groups() []group { return nil }
