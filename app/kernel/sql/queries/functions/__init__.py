"""The functions of views, the arguments that they accept, and the types of their results."""
