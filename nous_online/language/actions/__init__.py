"""Action matching: whether what an agent is about to do is what a trigger warns of."""
