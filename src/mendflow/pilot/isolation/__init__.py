"""As whom jobs run, and what they see of the machine: their variables, their account, their sandbox."""
