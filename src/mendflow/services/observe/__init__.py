"""What people and programs are told: alerts, notifications, metrics, traces, histories."""
