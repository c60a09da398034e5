# Scripts of bash that submit scripts of bash, with and without a BASH_ENV of the user.
cat > outer.sh <<'X'
#!/bin/bash
echo "outer $(type -t hello)"
sbatch -W -o inner.txt inner.sh > /dev/null
echo "rc $?"
X
cat > inner.sh <<'X'
#!/bin/bash
echo "inner $(type -t hello)"
sbatch -W -o last.txt --wrap 'bash -c "echo last \$(type -t hello)"' > /dev/null
bash -c 'echo "a shell $(type -t hello)"'; srun bash -c 'echo "a task $(type -t hello)"'
X
echo 'hello() { :; }' > mine.sh
sbatch -W -o outer.txt outer.sh > /dev/null; cat outer.txt inner.txt last.txt
BASH_ENV=$PWD/mine.sh sbatch -W -o outer.txt outer.sh > /dev/null; cat outer.txt inner.txt last.txt
