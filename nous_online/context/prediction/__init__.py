"""Which memories are likely to be wanted next, from what was wanted before."""
