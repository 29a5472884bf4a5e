"""What people and programs are shown: alerts, notifications, metrics, traces, histories."""
