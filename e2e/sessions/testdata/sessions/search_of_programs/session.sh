# Where srun looks for a program: PATH, then the folder; there is no shell for files without "#!".
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
mkdir -p bin other
printf '#!/bin/sh\necho mine\n' > true; printf '#!/bin/sh\necho bin\n' > bin/tool; printf '#!/bin/sh\necho cwd\n' > tool; printf 'echo plain\n' > plain; printf '#!/bin/sh\necho never\n' > closed
printf '#!/bin/sh\necho other\n' > other/only; chmod +x true bin/tool tool plain other/only
t() { srun -Q -n1 "$@" 2> /dev/null; echo "$* $?"; }
t true; t tool; t closed; t only; t plain; t ./plain; t ./tool; t missing; t ./missing; t -D other only; t -D other ./only; t other; t ./other; t ''
PATH=$PWD/bin:$PATH t tool
t --export=PATH=$PWD/bin tool
t --export=NONE /bin/true
(cd other; t tool; t ../tool)
printf '0 tool\n1 bin/tool\n' > conf; srun --multi-prog conf | sort
X
sbatch -W -o o j.sh; grep -v '^srun\|^slurmstepd' o
