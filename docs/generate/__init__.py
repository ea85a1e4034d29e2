"""What is generated under docs/: the reference, from the code it is about, and drawings."""
