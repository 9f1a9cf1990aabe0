#!/bin/bash
# Build both images, start containers/compose.yaml as docs/operations/service.md says, with a certificate of its own,
# publish a HIT and submit it: bash .ci/containers.sh. Needs Docker with compose, and the ports 80 and 443; not as root.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -e containers/.env ]; then
    echo "containers/.env: exists; expected a checkout without settings" >&2
    exit 1
fi

docker build --file containers/evaluation/Dockerfile --tag giccs-evaluation .
docker run --rm --read-only --tmpfs /tmp --user "$(id -u):$(id -g)" --network none \
    giccs-evaluation eval baseline:char-ngram --data giccs-sample -o /tmp/results

certificates=$(mktemp -d)
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=work.example.org \
    -addext subjectAltName=DNS:work.example.org,DNS:questions.example.org \
    -keyout "$certificates/privkey.pem" -out "$certificates/fullchain.pem" 2> /dev/null
# the commands of the page that write settings and secrets
commands=$(sed -n '/not run: tests\/test_containers.py/,/^```$/s/^\$ //p' docs/operations/service.md)
(eval "set -e; ${commands//\/etc\/letsencrypt\/live\/work.example.org/$certificates}")

cd containers
trap 'docker compose logs; docker compose down --volumes' EXIT
docker compose config --quiet
docker compose up --build --detach --wait
ask() {
    curl --silent --show-error --fail --retry 5 --retry-connrefused --cacert "$certificates/fullchain.pem" \
        --resolve work.example.org:443:127.0.0.1 --resolve work.example.org:80:127.0.0.1 "$@"
}
ask https://work.example.org/healthz
test "$(ask --output /dev/null --write-out '%{http_code}' http://work.example.org/)" = 308
db=postgresql+psycopg://giccs@database/giccs
docker compose exec -T service giccs annotate invite --workers 1 --db "$db" --site-url https://work.example.org \
    > "$certificates/links.csv"

# A HIT, from the first tuple of the sample to its judgment, by a requester and a worker outside of the network
lab=$(sed 's/lab = "\(.*\)"/\1/' private/keys.toml)
outside() {
    docker run --rm --interactive --network host --user "$(id -u):$(id -g)" --workdir /study \
        --add-host work.example.org:127.0.0.1 --add-host questions.example.org:127.0.0.1 \
        --volume "$certificates:/study" --volume "$PWD/../giccs/data:/data:ro" \
        --env SSL_CERT_FILE=/study/fullchain.pem --env AWS_CA_BUNDLE=/study/fullchain.pem \
        --env AWS_ACCESS_KEY_ID=lab --env AWS_SECRET_ACCESS_KEY="$lab" giccs-service "$@"
}
head -n 2 ../giccs/data/tuples.csv > "$certificates/tuples.csv"
outside publish tuples.csv --dialogues /data/dialogues.jsonl --endpoint https://work.example.org --yes
outside simulate --truth /data/dialogues.jsonl --workers 1 --links links.csv --endpoint https://work.example.org
outside collect -o judgments.csv
test "$(wc -l < "$certificates/judgments.csv")" = 2

# The commands of the page for backup and update
docker compose exec -T database pg_dump --username=giccs --format=custom giccs > private/giccs.dump
docker compose down --volumes
docker compose up --detach --wait database
docker compose exec -T database pg_restore --username=giccs --single-transaction --no-owner --dbname=giccs \
    < private/giccs.dump
docker compose run --rm service migrate --db "$db"
docker compose up --detach --wait
outside collect -o restored.csv
diff "$certificates/judgments.csv" "$certificates/restored.csv"
