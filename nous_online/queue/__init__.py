"""The work that calls leave behind: completions and events, the worker, and the built-in reactions."""
