"""The database of the service: schema, migrations, transactions."""
