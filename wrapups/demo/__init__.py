"""What a fresh installation is shown with: three accounts, and for one of them a history written for it."""
