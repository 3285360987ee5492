/** A real container engine for tests, and an image made of programs of this machine, so that nothing is downloaded. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const PROGRAMS = [
  'sh',
  'cat',
  'chmod',
  'cp',
  'grep',
  'id',
  'ln',
  'ls',
  'mkdir',
  'mknod',
  'mount',
  'mv',
  'rm',
  'sleep',
]

export interface Engine {
  /** Folder with a program `docker`, for the PATH. */
  folder: string
  image: string
}

/** The engine, or the reason for its absence. */
export function containerEngine(folder: string): Engine | string {
  const podman = which('podman')
  if (podman === undefined) return 'podman is not installed (Debian: apt-get install podman)'
  if (process.getuid?.() !== 0) return 'these tests run podman as root'
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const limits = join(folder, 'containers.conf')
  // A sandbox may forbid to raise them, which podman would do.
  writeFileSync(limits, '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n')
  const runtime = which('crun') === undefined ? 'runc' : 'crun'
  const own = `--root '${folder}/storage' --runroot '${folder}/run' --storage-driver vfs --runtime ${runtime}`
  writeFileSync(
    join(bin, 'docker'),
    [
      '#!/bin/sh',
      `export CONTAINERS_CONF='${limits}'`,
      'verb=$1; shift',
      'if [ "$verb" = run ]; then set -- --network=host "$@"; fi',
      `exec '${podman}' ${own} "$verb" "$@"`,
      '',
    ].join('\n'),
  )
  chmodSync(join(bin, 'docker'), 0o755)
  const image = 'localhost/crucible-walls:1'
  const docker = join(bin, 'docker')
  const problem = importImage(folder, { docker, image }) ?? tryRun(docker, image)
  return problem ?? { folder: bin, image }
}

function importImage(
  folder: string,
  { docker, image }: { docker: string; image: string },
): string | undefined {
  const root = join(folder, 'root')
  for (const name of ['bin', 'dev', 'etc', 'proc', 'sys', 'tmp'])
    mkdirSync(join(root, name), { recursive: true })
  for (const name of PROGRAMS) {
    const program = which(name)
    if (program === undefined) return `${name} is not on the PATH`
    cpSync(realpathSync(program), join(root, 'bin', name))
    for (const library of librariesOf(program)) {
      mkdirSync(join(root, dirname(library)), { recursive: true })
      cpSync(realpathSync(library), join(root, library))
    }
  }
  const archive = join(folder, 'image.tar')
  const packed = spawnSync('tar', ['-C', root, '-cf', archive, '.'], { encoding: 'utf8' })
  if (packed.status !== 0) return packed.stderr
  const imported = spawnSync(docker, ['import', archive, image], { encoding: 'utf8' })
  return imported.status === 0 ? undefined : `podman import: ${imported.stderr}`
}

function tryRun(docker: string, image: string): string | undefined {
  const { status, stderr } = spawnSync(docker, ['run', '--rm', '--init', image, '/bin/sh', '-c', 'true'], {
    encoding: 'utf8',
  })
  return status === 0 ? undefined : `podman runs no container here: ${stderr}`
}

function librariesOf(program: string): string[] {
  const { stdout } = spawnSync('ldd', [realpathSync(program)], { encoding: 'utf8' })
  return (stdout.match(/\/[^\s)]+/g) ?? []).filter((path) => existsSync(path))
}

function which(name: string): string | undefined {
  const { status, stdout } = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' })
  const path = stdout.trim()
  return status === 0 && path.startsWith('/') ? path : undefined
}
