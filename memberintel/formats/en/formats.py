"""Days before months, and hours to 24: nobody has to ask which half of the day."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i"
