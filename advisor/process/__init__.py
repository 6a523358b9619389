"""What a process that lasts needs: signals, what systemd hears, a log, and to be alone with its memory."""
