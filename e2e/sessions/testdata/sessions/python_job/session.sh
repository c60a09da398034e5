# A job in Python that starts steps in all its ways, and hears signals.
cat > j.py <<'X'
#!/usr/bin/env python3
#SBATCH -n4 -J py
import concurrent.futures, os, builtins, functools, signal, subprocess, sys
print = functools.partial(builtins.print, flush=True)
srun = ["srun", "-n1", "--exact"]
print("args", sys.argv[1:], os.environ["SLURM_JOB_NAME"], sys.stdin.read() == "", flush=True)
print(subprocess.run(srun + ["bash", "-c", "exit 3"], stderr=subprocess.DEVNULL).returncode)
print(subprocess.check_output(srun + ["cat"], input=b"to a step\n"))
print(subprocess.run("srun -n2 bash -c 'echo $SLURM_PROCID' | sort | tr -d '\\n'", shell=True, stdout=subprocess.PIPE, text=True).stdout)
p = subprocess.Popen(srun + ["bash", "-c", "read x; echo got $x; read y; echo got $y"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
p.stdin.write("one\n"); p.stdin.flush(); print(p.stdout.readline(), end=""); print(p.communicate("two\n")[0], end=""); print(p.returncode)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda i: subprocess.run(srun + ["bash", "-c", "sleep 0.1; exit %d" % i], stderr=subprocess.DEVNULL).returncode, range(8))))
try:
    subprocess.run(srun + ["sleep", "30"], timeout=2, stderr=subprocess.DEVNULL)
except subprocess.TimeoutExpired:
    print("timed out")
p = subprocess.Popen(srun + ["sleep", "30"], stderr=subprocess.DEVNULL); signal.signal(signal.SIGALRM, lambda *a: p.terminate()); signal.alarm(2); print("ended", p.wait() != 0)
print(os.system("srun -n1 --exact bash -c 'exit 4' 2> /dev/null") >> 8, flush=True)
p = subprocess.Popen(srun + ["sh", "-c", "echo err >&2; echo out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, close_fds=True, text=True); print(sorted(p.communicate()[0].split()))
os.execvp("srun", srun + ["bash", "-c", "echo last; exit 6"])
X
sbatch -W -o o j.py 'a b' '' > /dev/null; echo $?; grep -v '^srun\|^slurmstepd' o
