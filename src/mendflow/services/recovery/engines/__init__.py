"""The engines that the exception service serves: the one of this server, and those of other systems."""
