"""How sessions get and lose their capacity: receivers of what happens to sessions."""
