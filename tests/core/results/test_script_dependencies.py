"""What a script names that is not in its key: in doubt, its result is not used again."""

import pytest

from mendflow.core.results.script_dependencies import OF_THE_ATTEMPT, first_doubt

KNOWN = frozenset({"KNOWN"})
STARTERS = (
    *(
        "flock l",
        "flock -n -w 3 l",
        "timeout -s KILL 5",
        "timeout 5m",
        "nice -n 5",
        "env A=1",
        "env -u A",
        "xargs -I{}",
    ),
    *("xargs -I{}", "parallel -j 2", "stdbuf -oL", "nohup", "time -p", "sudo -u ann", "setsid -w", "ionice -c 3"),
    *(
        "taskset 0x3",
        "chronic",
        "chrt -b 0",
        "numactl -N 0",
        "strace -o log",
        "script -q log -c",
        "conda run -n env",
        "srun -n 1",
    ),
    *("busybox", "exec", "command", "A=1 flock l", "nice flock l", "apptainer exec image.sif", "if", "! ", "then"),
)


@pytest.mark.parametrize(
    ("script", "named"),
    [
        # absolute paths, however they are written
        ("cp /scratch/x/y.bam .", "/scratch/x/y.bam"),
        ("cat /tmp/x/y=1/d", "/tmp/x/y=1/d"),
        ("cat /tmp/x/[d]", "/tmp/x/[d]"),
        (r"cat /tmp/x/a\ b", "/tmp/x/a"),
        ("cat /tmp/$(echo x)/d", "/tmp/.../d"),
        ("cat /tmp/`echo x`/d", "/tmp/.../d"),
        ("cat //tmp/x/d", "//tmp/x/d"),
        ("cat {/tmp/x/d,in.txt}", "/tmp/x/d"),
        ("cat {in.txt,/tmp/x/d}", "/tmp/x/d"),
        ("cat {,x}/tmp/d", "{,x}/tmp/d"),
        ("cat '/with quotes'", "/with"),
        ('cat "/data/$KNOWN"', "/data/..."),
        (r"cat \/tmp/d", "/tmp/d"),
        (r"cat $'\x2fetc/passwd'", "/etc/passwd"),
        (r"cat $'\057etc/passwd'", "/etc/passwd"),
        (r"cat $'\u002fetc\'s'", "/etc"),
        ("cat \\\n /tmp/d", "/tmp/d"),
        ("sort in.txt </tmp/d", "/tmp/d"),
        ("sort in.txt >/tmp/d", "/tmp/d"),
        ("cat <<< /tmp/d", "/tmp/d"),
        ("echo $(cat /tmp/d)", "/tmp/d"),
        ("prog --db=/db/nt --out b", "/db/nt"),
        ("cc -I/usr/include x.c", "/usr/include"),
        ("curl -d @/tmp/d host", "/tmp/d"),
        ("scp host:/tmp/d .", "/tmp/d"),
        ("db=/db/nt; prog $db", "/db/nt"),
        ("prog ${KNOWN:-/tmp/d}", "/tmp/d"),
        ("for f in /data/*; do cat $f; done", "/data/*"),
        ("ls /", "/"),
        ("find / -name d", "/"),
        ("cat <<END > x.py\nopen('/tmp/d')\nEND", "/tmp/d"),
        ("cat /bin/../tmp/d", "/bin/../tmp/d"),
        ("cat /usr/../tmp/x/d", "/usr/../tmp/x/d"),
        ("cat /dev/null/../../tmp/d", "/dev/null/../../tmp/d"),
        ("/opt/tool/bin/run in.txt", "/opt/tool/bin/run"),
        ("bash -c 'cat /tmp/d'", "/tmp/d"),
        ("python3 -c 'print(open(\"/tmp/d\").read())'", "/tmp/d"),
        # in programs of sed and awk
        ("sed -e r/tmp/x/d in.txt", "r/tmp/x/d"),
        ("sed -er/tmp/x/d in.txt", "r/tmp/x/d"),
        ("sed 's/a/b/w /tmp/d' in.txt", "s/a/b/w /tmp/d"),
        ("sed 's/a/cat x/e' in.txt", "s/a/cat x/e"),
        ("sed s/a/b/ /tmp/d", "/tmp/d"),
        ("awk '{print > \"/tmp/d\"}' in.txt", "/tmp/d"),
        ("awk '/x/' /tmp/d", "/tmp/d"),
        ("cat awk '/tmp/d'", "/tmp/d"),
        # folders above, home folders, URLs
        ("cat ../a", "../a"),
        ("cat b/../c", "../c"),
        ("cat ./../../tmp/x/d", "../../tmp/x/d"),
        ("cd .. && cat d", ".."),
        ("cat ~/b", "~/b"),
        ("cat ~ann/b", "~ann/b"),
        ("x=~/b", "x=~/b"),
        ("cd && cat d", "~"),
        ("cd --; cat d", "~"),
        ("cd -P; cat d", "~"),
        ("cat ~", "~"),
        ("timeout 5 cat ~/d", "~/d"),
        ("flock l cat ../d", "../d"),
        ("flock l -c 'cat ../d'", "../d"),
        ("python3 -c 'from pathlib import Path; print(Path.home())'", "the home folder"),
        ("aws s3 cp s3://bucket/key .", "s3://bucket/key"),
        ("curl 'https://there/x?y=1'", "https://there/x?y=1"),
    ],
)
def test_places_outside_of_the_jobs_folder_are_seen(script: str, named: str) -> None:  # DU-2
    assert first_doubt(script, "", KNOWN) == f"it names {named}, which is none of its inputs and may have changed"


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("cat $FOO/d", "FOO"),
        ("cat $HOME/d", "HOME"),
        ("cat $TMPDIR/d", "TMPDIR"),
        ('cat "${FOO}"', "FOO"),
        ("cat ${FOO:-in.txt}", "FOO"),
        ("cat ${#FOO}", "FOO"),
        ("cat ${!KNOWN}", "KNOWN"),
        ("FOO=${FOO:-1}; cat $FOO", "FOO"),
        ("cat $FOO; FOO=1", "FOO"),
        ("FOO=1 cat $FOO", "FOO"),
        ("FOO=1 true; cat $FOO", "FOO"),
        ("echo $((FOO / 2))", "FOO"),
        ("(( KNOWN > FOO )) && cat d", "FOO"),
        ("cat <<END\n$FOO\nEND", "FOO"),
        ("bash -c 'cat $FOO'", "FOO"),
        ("xargs -I{} sh -c 'cat $FOO {}' < in.txt", "FOO"),
        ("eval 'cat $FOO'", "FOO"),
        ("bash <<'END'\ncat $FOO\nEND", "FOO"),
        ("cat <<'END' | bash\ncat $FOO\nEND", "FOO"),
        ("cat > x.sh <<'END'\ncat $FOO\nEND\nbash x.sh", "FOO"),
        ("(FOO=$(true)); cat ${FOO#a}; echo $BAR", "FOO"),
        ("x=$(FOO=1; echo $FOO); cat $FOO", "FOO"),
        ("printenv FOO", "FOO"),
        ("python3 -c 'import os; print(os.environ[\"FOO\"])'", "FOO"),
        ("python3 - <<'END'\nimport os\nprint(os.getenv('FOO'))\nEND", "FOO"),
        ("awk '{print ENVIRON[\"FOO\"]}' in.txt", "FOO"),
        ("perl -e 'print $ENV{FOO}'", "FOO"),
        ("jq -n env.FOO", "FOO"),
        ("jq -n '$ENV.FOO' in.json", "FOO"),
        ("envsubst '$FOO' < in.txt", "FOO"),
        ("python3 -c 'import subprocess; subprocess.run(\"echo $FOO\", shell=True)'", "FOO"),
        ("cd - && cat d", "OLDPWD"),
        ("flock l -c 'cat $FOO'", "FOO"),
    ],
)
def test_a_variable_that_the_job_does_not_set_is_seen(script: str, name: str) -> None:  # DU-2
    assert first_doubt(script, "", KNOWN).startswith(f"it uses ${name}, which it does not set itself")


@pytest.mark.parametrize(
    "script",
    [
        *("printenv > f", "printenv -0", "env", "env -0", "env A=1", "command env"),
        *("export -p", "export", "declare -p", "declare -x", "typeset -p", "readonly -p"),
        *("set", "set | sort", "compgen -v", "x=$(set)"),
    ],
)
def test_what_prints_all_variables_is_seen(script: str) -> None:  # DU-2
    assert "the whole environment" in first_doubt(script, "", KNOWN)


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("cat ${PWD%/*}/x", "PWD"),
        ("cat $(dirname $PWD)/x", "PWD"),
        ('cat "$(dirname "$(pwd)")"/x', "PWD"),
        ("here=$PWD; cat ${here%/*}/x", "here"),
        ("here=$(pwd); cat $(dirname $here)/x", "PWD"),
        ("cat ${PWD/work/data}/x", "PWD"),
        ("declare -p FOO", "FOO"),
    ],
)
def test_a_folder_above_is_seen_also_if_it_is_made_of_that_of_the_job(script: str, name: str) -> None:  # DU-2
    assert first_doubt(script, "", KNOWN).startswith(f"it uses ${name}, which it does not set itself")


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("curl example.com/data.csv > x.csv", "curl"),
        ("wget host/x", "wget"),
        ("wget host", "wget"),
        ("timeout 5 wget --input-file=urls.txt", "wget"),
        ("ssh host cat d", "ssh"),
        ("scp host:d .", "scp"),
        ("rsync host::d .", "rsync"),
        ("git clone there", "git"),
        ("git diff HEAD~1 > out.txt", "git"),
        ("nc host 80 < in.txt", "nc"),
        ("aws s3 sync bucket .", "aws"),
        ("xargs -n 1 curl -O < in.txt", "curl"),
        *((f"{starter} curl -s host > out.txt", "curl") for starter in STARTERS),
        ("flock l -c 'curl -s host' > out.txt", "curl"),
        ("parallel 'curl -s {}' ::: a b", "curl"),
        ("flock l timeout 5 sh -c 'curl -s host'", "curl"),
        ('python3 -c \'import subprocess; subprocess.run(["curl", "host"])\'', "curl"),
        ("python3 -c 'import requests'", "requests"),
        ("psql -c 'select * from t' > out.csv", "psql"),
        ("mysql < query.sql > out.tsv", "mysql"),
        ("kubectl get pods > out.txt", "kubectl"),
        ("fasterq-dump SRR000001", "fasterq-dump"),
        ("apt-get install -y samtools", "apt-get"),
        ("docker run ubuntu true", "docker run"),
        ("sudo docker run --rm image bash -c 'echo 1'", "docker run"),
        ("podman pull image", "podman pull"),
        ("pip install numpy", "pip install"),
        ("python3 -m pip install numpy", "pip install"),
        ("conda install -y numpy", "conda install"),
        ("uv pip install numpy", "uv pip"),
    ],
)
def test_a_program_that_gets_data_from_elsewhere_is_seen(script: str, program: str) -> None:  # DU-2
    told = f"it runs {program}, which gets from elsewhere what may have changed"
    assert first_doubt(script, "", KNOWN) == told


@pytest.mark.parametrize("name", sorted(OF_THE_ATTEMPT))
@pytest.mark.parametrize("variables", [frozenset[str](), OF_THE_ATTEMPT])
def test_what_the_pilot_says_of_an_attempt_is_another_in_each_case(name: str, variables: frozenset[str]) -> None:
    # DU-2: also if the job sets it, as the pilot sets it after that
    assert first_doubt(f"sort in.txt > ${{{name}}}.txt", "", variables) == (
        f"it uses ${name}, which is another in each case"
    )


@pytest.mark.parametrize(
    "script",
    [
        "sort in.txt > out.txt",
        "cat a.txt | sort -t/ -k2 > sub/b.txt",
        "/usr/bin/env python3 run.py < /dev/null 2> /dev/stderr",
        "/bin/cat in.txt > /dev/stdout",
        "#!/usr/bin/env bash\nset -euo pipefail\nsort in.txt > out.txt 2>/dev/null",
        "./prog in.txt; bin/tool -o out/x.txt",
        "sed 's/a/b/g' in.txt > out.txt",
        "sed s/a/b/ in.txt",
        "sed -e 's/a/b/' -e 's|/c|d|' in.txt",
        "sed -n '/^>/,/^$/p; 3d' in.txt",
        "sed ':a;N;$!ba;s/\\n/ /g' in.txt",
        'sed -i "s/x/$KNOWN/" in.txt',
        "awk '/^>/ {n++} END {print n}' in.fasta",
        "awk -F/ '{print $1 / $2}' in.txt",
        "awk -F '/' -v n=3 '$2 ~ /x/ {split($1, a, \"/\"); print a[1] \"/\" n}' in.txt",
        "timeout 5 awk '/x/' in.txt",
        "find . -name '*.txt' -exec sed -i 's/a/b/' {} +",
        "xargs -I{} sh -c 'cp {} out/' < in.txt",
        "perl -pe 's/a/b/' in.txt",
        "tr '/' '_' < in.txt; cut -d/ -f2 in.txt; expr 6 / 2",
        "echo $((6 / 2)) a/b ./c",
        "n=$(wc -l < in.txt); echo $((n / 2))",
        "echo 'this and/or that' # as in /tmp/x, don't",
        'echo "5 / 2" and/or 1/2',
        "date +%Y/%m/%d",
        "printf '%s/%s\\n' a b",
        'for f in *.txt; do wc -l "$f" > "${f%.txt}/${f##*/}.n"; done',
        "for ((i = 0; i < 3; i++)); do echo $((i / 2)); done",
        'while IFS=/ read -r a b; do echo "$a/$b"; done < in.txt',
        "case $1 in a|b) echo x;; *) echo y;; esac",
        'f() { local n=$1; echo "$n/$#"; }; f x',
        "declare -a parts; parts+=(x); echo ${parts[@]} ${#parts[@]} ${!parts[@]}",
        "export PATH=$PWD/bin:$PATH",
        "echo rows=$(wc -l < in.txt) >> \"$MENDFLOW_OUTPUT\"; echo '{}' >> $MENDFLOW_REPORT",
        "cat $KNOWN/x ${KNOWN:-y}",
        "FOO=x; cat $FOO/y",
        "cat <<'END' > x.html\n<td>$1.50</td><br/>\nEND",
        "cat <<END\n\t$KNOWN/x\nEND\ncat in.txt",
        "diff <(sort a.txt) <(sort b.txt)",
        "echo {1..5} wait... a..b; mkdir -p a/{b,c}/d; cp x{,.bak}",
        "[[ $KNOWN =~ ^a ]] && echo x || echo y",
        "trap 'rm -f x' EXIT; head -c 10 /dev/zero > out.txt",
        "python3 -c 'import os; print(os.environ[\"KNOWN\"], 3 / 2, 3 // 2)'",
        "flock l sort in.txt > out.txt; nice -n 5 sed 's/a/b/' in.txt; parallel 'wc -l {} > {.}.n' ::: *.txt",
        "cd sub && sort in.txt && cd - && cat out.txt",
        "jq '.environment | .a' in.json; jq --arg n 1 '.x[$n]' in.json",
        "python3 -c 'from pathlib import Path; Path(\"a/b\").parent.mkdir(); import urllib.parse, json'",
        "curl --version; set -eu; set -- a b; declare -i n; export PATH",
        "cat $'a\\tb' ${PWD}/in.txt; here=$PWD; cat $here/in.txt ${here:-x}; f=a/b; cat ${f%/*}/c $(dirname $f)/d",
    ],
)
def test_a_script_that_names_only_what_it_has_declares_enough(script: str) -> None:  # DU-2
    assert first_doubt(script, "", KNOWN) == ""


@pytest.mark.parametrize(
    ("shell", "script", "named"),
    [
        ("python", "# from /tmp/x\nprint(3 / 2, open('in.txt').read())", ""),
        ("python", "print(open('/tmp/x').read())", "/tmp/x"),
        ("python", "import os\nprint(os.environ.get('FOO'))", "$FOO"),
        ("Rscript {0}", "x <- read.csv('../d.csv')", "../d.csv"),
        ("bash -x {0}", "sed 's/a/b/' in.txt", ""),
        ("sh {0}", "cat $FOO", "$FOO"),
        ("python", "from pathlib import Path\nprint((Path.home() / 'ref.csv').read_text())", "the home folder"),
        ("python", "import os\nprint(open(os.path.expanduser('~')))", "the home folder"),
        ("python", "from pathlib import Path\np = Path.cwd()\nwhile p: p = p.parent", "a folder above its own"),
        ("python", "import os\nprint(os.listdir(os.path.dirname(os.getcwd())))", "a folder above its own"),
        ("python", "import os\nprint(os.listdir(os.pardir))", "a folder above its own"),
        ("python", "import os\nos.system('echo $FOO')", "$FOO"),
        ("python", "import subprocess\nsubprocess.run(['wget', 'host'])", "wget"),
        ("python", "from urllib.request import urlopen\nprint(urlopen(x))", "urllib.request"),
        ("python", "from pathlib import Path\nprint(Path('a/b.txt').parent.name)", ""),
        ("Rscript {0}", "x <- read.csv('in.csv'); x$FOO <- 1; write.csv(x, 'out.csv')", ""),
        ("node {0}", "// see\nconst x = process.env.FOO", "$FOO"),
    ],
)
def test_scripts_of_other_shells_are_read_too(shell: str, script: str, named: str) -> None:  # DU-2
    found = first_doubt(script, shell, KNOWN)
    assert f" {named}, " in found if named else not found


@pytest.mark.parametrize("script", ["echo don't /x", "cat $(echo", 'echo "$x', "echo ${x", "echo " + "$(" * 5_000])
def test_a_script_that_cannot_be_read_is_in_doubt(script: str) -> None:  # DU-2
    assert "cannot be read" in first_doubt(script, "", KNOWN)


@pytest.mark.parametrize(
    "script",
    [
        *("LABEL+=x; echo $LABEL", "LABEL+=(x)", "declare -x LABEL; echo $LABEL", "declare LABEL; echo $LABEL"),
        *(
            "typeset LABEL; echo $LABEL",
            "[[ -v LABEL ]] && echo y",
            "[ -v LABEL ] || exit 1",
            "test -v LABEL && echo y",
        ),
        *("[[ -v LABEL[0] ]]", "for f in a b; do LABEL+=$f; done", "export LABEL+=x"),
    ],
)
def test_a_variable_that_is_only_kept_added_to_or_asked_for_comes_from_outside(script: str) -> None:  # DU-2
    assert first_doubt(script, "", frozenset()).startswith("it uses $LABEL, which it does not set itself")


@pytest.mark.parametrize(
    "script",
    [
        *("L=a; L+=x; echo $L", "a=(); a+=(1); echo ${a[@]}", "declare L=1; echo $L", "L=1; [[ -v L ]] && echo y"),
        *("f() { local x; x=1; echo $x; }; f", "grep -v LABEL in.txt", "awk -v n=3 '{print n}' in.txt"),
        "declare -A c; for i in a b; do c[$i]=1; done; echo ${c[@]}",
        *("docker run image@sha256:0123 true", "docker --version", "echo pip install", "conda run -n e python x.py"),
    ],
)
def test_what_the_script_has_itself_is_not_doubted(script: str) -> None:  # DU-2
    assert first_doubt(script, "", frozenset()) == ""


def test_a_slash_that_is_put_into_a_variable_may_begin_a_path() -> None:  # DU-2
    assert first_doubt("S=/; cat ${S}data/x", "", frozenset()).startswith("it names /,")
