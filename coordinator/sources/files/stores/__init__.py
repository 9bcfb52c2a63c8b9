"""Where files are: a local file system or one of Arrow's, plain or compressed, behind one interface."""
