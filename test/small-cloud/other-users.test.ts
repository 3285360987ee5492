/** What another user of the host gets of a small cloud: with a second user of the operating system, so these tests need root. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { EC2Client, RunInstancesCommand } from '@aws-sdk/client-ec2'
import { storeFrontOver } from '../../cli/dev/versitygw/front'
import { startCloud, type Cloud } from '#small-cloud'
import { testFolder } from '../support/folders'
import { testVersitygw, versitygwOver } from '../support/s3'
import { until } from '../support/until'

const STRANGER = 54_321
const ATTEMPT_KEY = 'attempt-key-5f1c9be2'
const USER_DATA = `#!/bin/sh
key=${ATTEMPT_KEY}
nvidia-smi >/dev/null 2>&1
# A program that the machine's manager answers stays visible in the list of processes.
systemd-run --unit=work sleep 600
while :; do systemctl is-active work; sleep 0.05; done
`

/** Looks through the host as its user; prints one line of JSON with what it has found. */
const LOOK = `
import glob, http.client, json, os, socket, sys
given = json.load(sys.stdin)
secrets, ports, folders = given["secrets"], given["ports"], given["folders"]
found = []
def note(where, text):
    for name, secret in secrets.items():
        if secret.encode() in text:
            found.append("%s in %s" % (name, where))
def read(path):
    try:
        with open(path, "rb") as file:
            note(path, file.read(1000000))
    except OSError:
        pass
for process in glob.glob("/proc/[0-9]*"):
    for name in ("cmdline", "environ"):
        read(os.path.join(process, name))
for folder in folders:
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            read(path)
            try:
                socket.socket(socket.AF_UNIX).connect(path)
                found.append("connected to %s" % path)
            except OSError:
                pass
TTL = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
ASKS = [("PUT", "/latest/api/token", TTL), ("GET", "/latest/user-data", {}), ("GET", "/_sim/journal", {}),
        ("GET", "/_sim/instances", {"authorization": "Bearer test"}),
        ("POST", "/_sim/faults", {"content-type": "application/json"}),
        ("GET", "/_modal/control/secrets", {"user-agent": "modal-control-plane"}),
        ("GET", "/_modal/v1/health", {"modal-key": "wk-test", "modal-secret": "ws-test"}),
        ("GET", "/_lambda/api/v1/instances", {"authorization": "Bearer secret_small-cloud_0123456789abcdef"}), ("GET", "/kept", {})]
for port in ports:
    for method, path, headers in ASKS:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            note("an answer", answer.read())
            if answer.status < 300:
                found.append("%s %s was answered" % (method, path))
        except (OSError, http.client.HTTPException):
            pass
print(json.dumps(sorted(set(found))))
`

const asRoot = process.platform === 'linux' && process.getuid?.() === 0 ? describe : describe.skip

/** Ports on which this process and its children listen. */
function ownPorts(): number[] {
  const own = new Set(readdirSync('/proc/self/fd').map(socketOf))
  const rows = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1)
  const fields = rows.map((row) => row.trim().split(/\s+/))
  const listening = fields.filter((row) => row[3] === '0A' && own.has(row[9]))
  return listening.map((row) => parseInt(row[1]!.split(':')[1]!, 16))
}

function socketOf(fd: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1]
  } catch {
    return undefined
  }
}

async function look(given: object): Promise<string[]> {
  const child = spawn('python3', ['-IS', '-c', LOOK], {
    uid: STRANGER,
    gid: STRANGER,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(JSON.stringify(given))
  let text = ''
  for await (const piece of child.stdout) text += String(piece)
  return JSON.parse(text) as string[]
}

asRoot('another user of the host', () => {
  let cloud: Cloud
  let folder: string
  let machines: string

  beforeAll(async () => {
    folder = testFolder('other-users')
    machines = mkdtempSync(join(tmpdir(), 'crucible-machines-'))
    // As `crucible dev --sim` has it: the machines' user may enter.
    chmodSync(machines, 0o711)
    const executable = await testVersitygw()
    cloud = await startCloud({
      directory: machines,
      world: { durations: { pending: '100ms', boot: '100ms' } },
      startFront: storeFrontOver({ executable, directory: `${folder}/store`, buckets: ['kept'] }),
    })
    const { endpoint, region, credentials } = cloud
    const ec2 = new EC2Client({ endpoint, region, credentials })
    const UserData = Buffer.from(USER_DATA).toString('base64')
    const ImageId = 'resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64'
    await ec2.send(
      new RunInstancesCommand({
        ImageId,
        MinCount: 1,
        MaxCount: 1,
        UserData,
        IamInstanceProfile: { Name: 'crucible-machine' },
      }),
    )
    ec2.destroy()
    await until(() => cloud.instances()[0]?.state === 'running' && userDataRuns())
  }, 120_000)
  afterAll(async () => {
    await cloud?.stop()
    rmSync(machines, { recursive: true, force: true })
  })

  it('finds no key of a small cloud and runs nothing on its machines', async () => {
    const { secretAccessKey } = cloud.credentials
    const { lambda, modal } = cloud.providers
    const [server, words] = ['environ', 'cmdline'].map((name) =>
      readFileSync(`/proc/${versitygwOver(folder)!}/${name}`, 'utf8'),
    ) as [string, string]
    const socket = words.split('\0').find((word) => word.endsWith('/s3'))!
    const socketFolder = join(readlinkSync(`/proc/${versitygwOver(folder)!}/root`), dirname(socket))
    const disk = join(machines, cloud.instances()[0]!.id)
    const { token } = JSON.parse(readFileSync(join(disk, 'run/machine/machine.json'), 'utf8')) as {
      token: string
    }
    const secrets = {
      'the key of the cloud': secretAccessKey,
      "the operator's key": cloud.controlKey,
      "Lambda's key": lambda!['apiKey']!,
      "Modal's secret": modal!['secret']!,
      'the key of the store': /ROOT_SECRET_ACCESS_KEY=(\w+)/.exec(server)![1]!,
      'the token of a machine': token,
      "an attempt's key": ATTEMPT_KEY,
    }
    const ports = ownPorts()
    // The services, the store, the metadata and the manager of the machine.
    expect(ports.length).toBeGreaterThanOrEqual(4)
    const folders = [socketFolder, folder, disk]
    const seen: string[] = []
    for (let round = 0; round < 3; round++) seen.push(...(await look({ secrets, ports, folders })))
    expect(seen).toEqual([])
  }, 120_000)
})

function userDataRuns(): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('is-active\0work')
    } catch {
      return false
    }
  })
}
