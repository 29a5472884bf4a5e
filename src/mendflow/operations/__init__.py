"""The operations that people and programs may ask for: each is declared once, as the call that asks for it.

The declaration says its method and path, what goes in and out, who may, and whether it can be repeated. The routes of
the HTTP API, its description, the gate of roles and the clients follow from it; the function of the same name in the
domain answers it."""
