"""One generation replica: its running batch, its KV memory and its clock."""
