"""The flows that the pages show: one that goes well, with loops, a called flow and files; one that fails; one that is
held for a person; one that runs long and prints."""

GOOD = """
name: survey
inputs:
  fields: {type: list, default: [m31, m33, m42], description: The fields that are observed}
jobs:
  prepare: {run: echo preparing}
  measure:
    needs: prepare
    for-each: {field: "${{ inputs.fields }}"}
    run: |
      echo "measuring"
      printf 'x,flux\\n1,20\\n2,40\\n' > stars.csv
    files: stars.csv
  report:
    needs: measure
    run: |
      echo '{"mean": {"flux": 30}}' > report.json
    files: report.json
outputs: {report: "${{ jobs.report.files['report.json'] }}"}
"""
BAD = """
name: broken
jobs:
  prepare: {run: echo preparing}
  measure:
    needs: prepare
    for-each: "${{ range(3) }}"
    run: 'if [ "${{ item }}" = 1 ]; then echo "ERROR: no stars in field ${{ item }}"; exit 4; fi'
    retries: 0
  report: {needs: measure, run: echo reporting}
"""
LONG = """
name: watching
jobs:
  watch: {run: "for i in $(seq 200); do echo \\"sample $i\\"; sleep 0.2; done"}
  then: {needs: watch, run: echo over}
"""
QUICK = """
name: quick
steps: [echo quick]
"""
FLOWS = {"survey": GOOD, "broken": BAD, "watching": LONG, "quick": QUICK}
