import { describe, expect, it } from '@jest/globals'
import type { Machine, MachineSpec } from '../../src/machines/machine'
import { registriesOf } from '../registries'
import { until } from '../support/until'
import { HAS_NAMESPACES, sh, uniqueSleep, useMachines } from './machines'

const createWorld = useMachines()
const test = HAS_NAMESPACES ? it : it.skip

async function bootOne(spec: Partial<MachineSpec> = {}): Promise<Machine> {
  const machine = createWorld().create({ docker: registriesOf().ask, ...spec })
  await machine.boot()
  return machine
}

describe('docker on a machine', () => {
  test('runs a command with what it is given, and with nothing else of the machine', async () => {
    const machine = await bootOne()
    const script =
      'pwd; echo "$GREETING$OTHER$2"; cat /data/in; ls /var/lib; echo out > /data/out; echo wrong >&2; exit 7'
    const answer = await sh(
      machine,
      `mkdir -p /var/lib/crucible/data && echo mounted > /var/lib/crucible/data/in
      export GREETING=hello OTHER=other
      docker run --rm --env GREETING -v /var/lib/crucible/data:/data --workdir /work --entrypoint sh some/image:1 -c '${script}' x y z
      code=$?; cat /var/lib/crucible/data/out; docker ps -aq; exit $code`,
    )
    expect(answer).toMatchObject({ exitCode: 7, stdout: '/work\nhelloz\nmounted\nout\n' })
    expect(answer.stderr).toContain('wrong\n')
  })

  test('keeps processes apart: what a container signals is in it', async () => {
    const machine = await bootOne()
    const [inside, outside] = [uniqueSleep(), uniqueSleep()]
    await sh(
      machine,
      `systemd-run --unit=other ${outside.command}; docker run -d --init --name box image ${inside.command}`,
    )
    await until(() => inside.pids().length === 1)
    expect((await sh(machine, 'docker exec box ps -axo args=')).stdout).not.toContain(outside.command)
    await sh(machine, 'docker exec box sh -c "kill -TERM -1"')
    await until(() => inside.pids().length === 0)
    expect(outside.pids()).toHaveLength(1)
    expect((await sh(machine, 'docker inspect -f "{{.State.Status}} {{.State.ExitCode}}" box')).stdout).toBe(
      'exited 143\n',
    )
    expect((await sh(machine, 'docker rm box; docker ps -aq')).stdout).toBe('box\n')
  })

  test('is as far from the metadata of its machine as the hop limit says', async () => {
    const program = `import os, urllib.request
url = os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"] + "/latest/api/token"
ask = urllib.request.Request(url, method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})
try:
    urllib.request.urlopen(ask, timeout=1)
    print("a token")
except OSError as error:
    print("nothing:", error)`
    const asked = `cat > /var/ask.py <<'END'\n${program}\nEND\npython3 /var/ask.py; docker run --rm --env AWS_EC2_METADATA_SERVICE_ENDPOINT -v /var/ask.py:/ask.py image python3 /ask.py`
    const near = await bootOne()
    expect((await sh(near, asked)).stdout).toMatch(/^a token\nnothing: .*timed out\n$/)
    const far = await bootOne({ hopLimit: 2 })
    expect((await sh(far, asked)).stdout).toBe('a token\na token\n')
  })

  test('keeps running when its client is killed, and is found by its labels', async () => {
    const machine = await bootOne()
    const sleep = uniqueSleep()
    await sh(
      machine,
      `docker run --rm --name box --label crucible.machine=a-1 image ${sleep.command} &\nclient=$!; until docker ps -q | grep -q .; do sleep 0.05; done; kill -KILL $client`,
    )
    await until(() => sleep.pids().length === 1)
    expect((await sh(machine, 'docker ps -aq --filter label=crucible.machine=other')).stdout).toBe('')
    expect(
      (await sh(machine, 'docker ps --format "{{.Names}}" --filter label=crucible.machine=a-1')).stdout,
    ).toBe('box\n')
    expect((await sh(machine, 'docker rm box')).stderr).toContain('container is running')
    expect((await sh(machine, 'docker rm --force box')).exitCode).toBe(0)
    expect(sleep.pids()).toEqual([])
    expect((await sh(machine, 'docker ps -aq')).stdout).toBe('')
  })

  test('does not end with the unit that called it, but with its machine', async () => {
    const machine = await bootOne()
    const sleep = uniqueSleep()
    await sh(machine, `systemd-run --unit=work docker run --name box image ${sleep.command}`)
    await until(() => sleep.pids().length === 1)
    await sh(machine, 'systemctl kill -s KILL work; sleep 0.2')
    expect(sleep.pids()).toHaveLength(1)
    await machine.kill()
    expect(sleep.pids()).toEqual([])
  })

  test('loses no signal that comes while a container starts', async () => {
    const machine = await bootOne()
    const early = `for n in 1 2 3 4 5 6 7 8; do
        docker run --rm --init image sh -c 'trap "exit 5" TERM; kill -TERM 1; while :; do sleep 0.1; done'; echo $?
      done`
    expect((await sh(machine, early)).stdout).toBe('5\n'.repeat(8))
  })

  test('hands signals to the command, and kills it when it does not listen', async () => {
    const machine = await bootOne()
    const polite = `docker run --init --name polite image sh -c 'trap "echo saved; exit 5" TERM; echo up; while :; do sleep 0.1; done' &
      client=$!; until docker logs polite 2>/dev/null | grep -q up; do sleep 0.05; done
      kill -TERM $client; wait $client; echo $?; docker logs polite`
    expect((await sh(machine, polite)).stdout).toBe('up\nsaved\n5\nup\nsaved\n')
    const deaf = `docker run -d --name deaf image sh -c 'trap "" TERM; while :; do sleep 0.1; done' >/dev/null; sleep 0.2; docker stop -t 1 deaf; docker inspect -f "{{.State.ExitCode}}" deaf`
    expect((await sh(machine, deaf)).stdout).toBe('deaf\n137\n')
  })

  test('asks registries for images, and takes what they say', async () => {
    const machine = await bootOne({
      docker: registriesOf({
        docker: {
          pull: 300,
          absentImages: ['no-such'],
          logins: { 'registry.example.com': { username: 'me', password: 'secret' } },
        },
      }).ask,
    })
    const started = Date.now()
    expect(
      (
        await sh(
          machine,
          'docker image inspect image; docker pull --quiet image && docker image inspect image',
        )
      ).exitCode,
    ).toBe(0)
    expect(Date.now() - started).toBeGreaterThanOrEqual(300)
    expect((await sh(machine, 'docker pull some/no-such:1')).stderr).toContain('manifest unknown')
    const image = 'registry.example.com/team/image:2'
    expect((await sh(machine, `docker run --rm ${image} true`)).exitCode).toBe(125)
    expect(
      (await sh(machine, 'echo wrong | docker login -u me --password-stdin registry.example.com')).stderr,
    ).toContain('unauthorized')
    const login = 'echo secret | docker login --username me --password-stdin registry.example.com'
    expect((await sh(machine, `${login} && docker run --rm ${image} echo ran`)).stdout).toBe(
      'Login Succeeded\nran\n',
    )
  })

  test('has GPUs where the machine has them, and as much shared memory as asked', async () => {
    const without = await bootOne()
    const refused = await sh(without, 'docker run --rm --gpus all image nvidia-smi')
    expect(refused).toMatchObject({ exitCode: 125, stderr: expect.stringContaining('device driver') })
    const machine = await bootOne({ gpus: [{ name: 'NVIDIA L4', memoryMiB: 23_034 }] })
    const run =
      'docker run --rm --gpus all --shm-size 300m image sh -c "nvidia-smi -L; df -m /dev/shm | tail -n 1"'
    expect((await sh(machine, run)).stdout).toMatch(/^GPU 0: NVIDIA L4.*\ntmpfs +300 /)
    expect((await sh(machine, 'docker run --rm image nvidia-smi')).exitCode).toBe(127)
  })

  test('says what it does not know or cannot do', async () => {
    const machine = await bootOne()
    expect((await sh(machine, 'docker run --frob image true')).stderr).toContain('unknown flag: --frob')
    expect((await sh(machine, 'docker frob')).stderr).toContain('not a docker command')
    expect((await sh(machine, 'docker run image')).stderr).toContain('no command of their own')
    expect((await sh(machine, 'docker run --rm image no-such-program')).exitCode).toBe(127)
    expect((await sh(machine, 'docker exec missing true')).stderr).toContain('No such container: missing')
    await sh(machine, 'docker run -d --name box image sleep 60')
    expect((await sh(machine, 'docker run --name box image true')).stderr).toContain('already in use')
  })

  it('has no server where containers could not be kept apart', async () => {
    const machine = await bootOne({ enclosure: 'groups' })
    const answer = await sh(machine, 'docker run image true')
    expect(answer).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('Cannot connect') })
    const without = createWorld().create()
    await without.boot()
    expect((await sh(without, 'command -v docker')).exitCode).not.toBe(0)
  })
})
