"""Lag, lag in time, outlook and Burrow's verdict of all groups as metrics for Prometheus; it only reads.

``readings`` examines the cluster and computes, ``metrics`` names the figures, ``serving`` hands them out. Beside them
lie a dashboard for Grafana (``dashboard.json``) and rules for Prometheus (``alerts.yml``).
"""
