"""Where the chunks of a night are worked on: in this process, on the cores of this machine, or on many machines."""
