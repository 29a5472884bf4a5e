"""The numbers of one server, and of all servers on the store, as they are when somebody asks."""
