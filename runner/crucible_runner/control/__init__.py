"""What the control plane asks of a machine, and what the machine reports."""
