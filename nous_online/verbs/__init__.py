"""The verbs of the heart, a file for each kind of memory: they start the clock and hand over to who acts."""
