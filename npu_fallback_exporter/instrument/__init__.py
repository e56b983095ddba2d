"""What runs inside a server process: finding, building, arming and asking the native hook.

Nothing here imports prometheus_client, and torch only when it is about to be used.
"""
