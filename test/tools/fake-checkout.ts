import { spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { writeScript } from '../cli/dev/temporal/fake-cli'

const REPOSITORY = join(__dirname, '../..')

/** Stands for the compiler: a source with the word BROKEN does not compile, any other is its own JavaScript. */
const FAKE_TSC = `
const { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } = require('node:fs')
const { dirname } = require('node:path')
appendFileSync('calls', process.argv.includes('--noEmit') ? 'types\\n' : 'tsc\\n')
const { include } = JSON.parse(readFileSync('tsconfig.json', 'utf8'))
for (const folder of include.filter((name) => existsSync(name))) {
  for (const name of readdirSync(folder, { recursive: true })) {
    if (!name.endsWith('.ts')) continue
    const text = readFileSync(folder + '/' + name, 'utf8')
    if (text.includes('BROKEN')) {
      console.log(folder + '/' + name + '(1,1): error TS1: it is broken')
      process.exitCode = 2
    }
    const output = 'dist/' + folder + '/' + name.replace(/ts$/, 'js')
    mkdirSync(dirname(output), { recursive: true })
    writeFileSync(output, text)
  }
}`

const SOURCES: Record<string, string> = {
  'core/time.ts': '// time',
  'core/units.json': '{}',
  'workers/bundle.ts': `exports.buildWorkflowBundle = async (file) => {
    require('node:fs').mkdirSync(require('node:path').dirname(file), { recursive: true })
    require('node:fs').writeFileSync(file, 'bundle')
  }`,
  'cli/dev/temporal/resolve.ts': `exports.resolveExecutable = async () => ({ version: '1.9.1', path: '/bin/temporal' })`,
  'cli/dev/versitygw/resolve.ts': `exports.resolveVersitygw = async () => '/bin/versitygw'`,
  'cli/dev/temporal/progress.ts': 'exports.progressOn = () => ({})',
  'tools/aws-clients.mjs': `export const getAwsClients = async () => '/bin/aws-clients'`,
  'tools/lambda-clients.mjs': `export const getLambdaClients = async () => '/bin/lambda-clients'`,
  'tools/modal-clients.mjs': `export const getModalClients = async () => '/bin/modal-clients'`,
  'tools/python-packages.mjs': `export const getPythonPackages = async () => '/bin/python-packages'`,
  'cli/main.ts': `console.log(JSON.stringify({ arguments: process.argv.slice(2), startedAs: process.argv[1] }))`,
  'runner/__main__.py': 'pass',
  'runner/bootstrap.py': 'pass',
  'runner/launching.py': 'pass',
  'runner/crucible_runner/machine_timer.py': 'pass',
  'runner/crucible_runner/sealing.py': 'pass',
  'tools/runner-zip.mjs': `
    import { mkdirSync, writeFileSync } from 'node:fs'
    mkdirSync('dist/runner', { recursive: true })
    writeFileSync('dist/runner/crucible-runner.pyz', 'zip')`,
  'tools/quick.mjs': `
    import { writeFileSync } from 'node:fs'
    for (const kind of ['js', 'licenses.txt']) writeFileSync('dist/cli/quick-commands.' + kind, kind)`,
  'tools/quick-cache.mjs': `
    import { writeFileSync } from 'node:fs'
    writeFileSync('dist/cli/quick-commands.js.' + process.version + '-' + process.arch + '.cache', 'compiled')`,
  'package.json': '{ "type": "commonjs" }',
  'tsconfig.json': '{ "include": ["core", "workers", "workflows", "cli"] }',
  'tsconfig.build.json': '{}',
}

/** Shell commands that install what the build copies. */
export const INSTALL_GRAMMAR = `mkdir -p node_modules/tree-sitter-python
  echo grammar >node_modules/tree-sitter-python/tree-sitter-python.wasm`

const INSTALLED = { 'node_modules/one': { version: '1.0.0', integrity: 'sha512-one' } }
const ELSEWHERE = { 'node_modules/for-another-platform': { version: '1.0.0', optional: true } }

export interface Outcome {
  code: number | null
  stdout: string
  stderr: string
}

/**
 * A small checkout, at a path with a space, with the real scripts of `tools/` and `.ci/`, and with everything that they call
 * replaced by scripts that write down that they were called.
 */
export class FakeCheckout {
  readonly folder = realpathSync(mkdtempSync(join(tmpdir(), 'crucible checkout ')))

  constructor() {
    for (const [path, text] of Object.entries(SOURCES)) this.write(path, text)
    for (const path of [
      'tools/setup.mjs',
      'tools/workflow-bundle.mjs',
      'tools/build.mjs',
      'tools/content.mjs',
      'tools/suites.mjs',
      'tools/test.mjs',
      '.ci/run',
      'crucible',
    ]) {
      mkdirSync(dirname(this.path(path)), { recursive: true })
      copyFileSync(join(REPOSITORY, path), this.path(path))
    }
    this.write('tsc.js', FAKE_TSC)
    this.writeLock(INSTALLED)
    writeScript(this.path('bin/python3'), 'echo 3.11')
    this.npm(`rm -rf node_modules
      ${INSTALL_GRAMMAR}
      mkdir -p node_modules/typescript-7/bin
      cp tsc.js node_modules/typescript-7/bin/tsc
      cp installed.json node_modules/.package-lock.json`)
  }

  path(path: string): string {
    return join(this.folder, path)
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true })
    writeFileSync(this.path(path), text)
  }

  /** package-lock.json wants these and a package for another platform, which npm leaves out. */
  writeLock(packages: object): void {
    this.write('package-lock.json', JSON.stringify({ packages: { '': {}, ...packages, ...ELSEWHERE } }))
    this.write('installed.json', JSON.stringify({ packages }))
  }

  npm(script: string): void {
    writeScript(this.path('bin/npm'), `echo "npm $*" >>calls\n${script}`)
  }

  /** What was called since the last time this was asked. */
  calls(): string[] {
    if (!existsSync(this.path('calls'))) return []
    const calls = readFileSync(this.path('calls'), 'utf8').trimEnd().split('\n')
    rmSync(this.path('calls'))
    return calls
  }

  node(...args: string[]): Promise<Outcome> {
    return this.run(process.execPath, args)
  }

  run(command: string, args: string[], path = `${this.path('bin')}:/usr/bin:/bin`): Promise<Outcome> {
    const child = spawn(command, args, { cwd: this.folder, env: { PATH: path, HOME: this.folder } })
    const outcome: Outcome = { code: null, stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => (outcome.stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (outcome.stderr += text))
    return new Promise((resolve) => child.on('close', (code) => resolve({ ...outcome, code })))
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
