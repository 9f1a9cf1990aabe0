"""The database of the service: schema, migrations and transactions."""
