"""The console: pages on which a person sees what an agent remembers, and settles what waits for one."""
