"""When schedules are due: cron expressions, intervals, and what is done about each time; pure."""
