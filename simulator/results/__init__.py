"""What a run leaves behind: columns with units, the recorder, estimates."""
