"""What customers may see, take away and destroy, and the record of who looked."""
