// Prepares a checkout: dependencies, build, and with --test the servers for the tests. Plain Node, because it runs before anything is
// installed. It writes all messages to stderr, and returns quickly when nothing is to do. It is a separate program, and part of `crucible`.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, realpathSync, rmSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { clearInterval, setInterval } from 'node:timers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { getAwsClients } from './aws-clients.mjs'
import { getLambdaClients } from './lambda-clients.mjs'
import { getModalClients } from './modal-clients.mjs'
import { getPythonPackages } from './python-packages.mjs'
import { build, isBuilt } from './build.mjs'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const MIN_NODE = [20, 19]
const BELOW_NODE = 25
const MIN_PYTHON = [3, 8]
const NPM_LIMIT_MS = 20 * 60_000
const TELL_EVERY_MS = 10_000
const KEPT_LINES = 12

/** A problem that a person must solve; the message gives the solution. */
class SetupError extends Error {}

const isProgram =
  process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
const flags = isProgram ? process.argv.slice(2) : []
const isQuiet = flags.includes('--quiet')
const say = (line) => isQuiet || process.stderr.write(`${line}\n`)

function isAtLeast([major, minor], [wantedMajor, wantedMinor]) {
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)
}

function checkNode() {
  const version = process.versions.node.split('.').map(Number)
  if (isAtLeast(version, MIN_NODE) && version[0] < BELOW_NODE) return
  throw new SetupError(
    `Crucible runs on Node ${MIN_NODE.join('.')} to ${BELOW_NODE - 1}, and this is ${process.versions.node}. ` +
      'Get Node 24 from https://nodejs.org, or by `nvm install 24`, and run this again.',
  )
}

/** The Python for machines of this host, as in backends/local/config.ts. */
function checkPython() {
  const name = process.env.CRUCIBLE_LOCAL_PYTHON?.trim() || 'python3'
  const { stdout, status } = spawnSync(name, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], {
    encoding: 'utf8',
  })
  const version = status === 0 ? stdout.trim() : undefined
  if (version !== undefined && isAtLeast(version.split('.').map(Number), MIN_PYTHON)) return
  throw new SetupError(
    `Crucible's machines run Python ${MIN_PYTHON.join('.')} or newer, and ${name} ${version === undefined ? 'cannot be run' : `is ${version}`}. ` +
      'Install it (Debian, Ubuntu: apt install python3; macOS: brew install python; else https://www.python.org), or name one with CRUCIBLE_LOCAL_PYTHON, and run this again.',
  )
}

function readLock(path) {
  try {
    return JSON.parse(readFileSync(join(ROOT, path), 'utf8')).packages
  } catch {
    return undefined
  }
}

/** npm writes the installed versions to `node_modules/.package-lock.json`, as its last step; they must match package-lock.json. */
function areDependenciesInstalled() {
  const [wanted, installed] = [readLock('package-lock.json'), readLock('node_modules/.package-lock.json')]
  if (wanted === undefined)
    throw new SetupError(
      'package-lock.json is missing or damaged: restore it (git checkout package-lock.json).',
    )
  if (installed === undefined) return false
  const isSame = (path) =>
    installed[path]?.version === wanted[path].version && installed[path]?.integrity === wanted[path].integrity
  return Object.keys(wanted).every(
    // Packages for other platforms are excluded; the product and the packages of this tree are not its dependencies.
    (path) =>
      !path.startsWith('node_modules/') ||
      isSame(path) ||
      (wanted[path].optional === true && installed[path] === undefined),
  )
}

/** `npm ci`, with progress messages while it runs. NODE_ENV=production must not exclude the build's dependencies. */
async function installDependencies() {
  say('Installing dependencies (npm ci), a minute or so the first time')
  const startedAt = Date.now()
  const npm = spawn('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [npm.stdout, npm.stderr])
    stream.setEncoding('utf8').on('data', (text) => (output += text))
  const telling = setInterval(() => {
    const elapsedMs = Date.now() - startedAt
    say(`  npm ci has run for ${Math.round(elapsedMs / 1000)} s`)
    if (elapsedMs > NPM_LIMIT_MS) npm.kill()
  }, TELL_EVERY_MS)
  const failure = await new Promise((resolve) => {
    npm.on('error', (error) =>
      resolve(error.code === 'ENOENT' ? 'there is no npm on PATH; it comes with Node' : error.message),
    )
    npm.on('close', (code, signal) =>
      resolve(
        code === 0
          ? undefined
          : reasonIn(output) ||
              `npm was ended by ${signal} after ${Math.round((Date.now() - startedAt) / 1000)} s`,
      ),
    )
  })
  clearInterval(telling)
  if (failure === undefined) return
  throw new SetupError(
    `The dependencies could not be installed:\n${failure}\n` +
      `If the network or the registry is out of reach, run this again when it is back; if ${ROOT} cannot be written, use a copy that can.`,
  )
}

/** npm prints the reason first, followed by other output. */
function reasonIn(output) {
  const lines = output.split('\n')
  const errors = lines.filter((line) => line.startsWith('npm error'))
  return (errors.length > 0 ? errors : lines).slice(0, KEPT_LINES).join('\n').trimEnd()
}

/**
 * Runs `work` while no other set-up of this checkout does. The lock file is outside the checkout, because `npm ci` empties node_modules.
 */
async function alone(work) {
  const lock = join(
    tmpdir(),
    `crucible-setup-${createHash('sha256').update(ROOT).digest('hex').slice(0, 16)}.lock`,
  )
  for (let waits = 0; !tryLock(lock); waits += 1) {
    if (waits === 0) say(`Waiting for another set-up of this checkout (if none is running, delete ${lock})`)
    await sleep(200)
  }
  try {
    await work()
  } finally {
    rmSync(lock, { force: true })
  }
}

function tryLock(path) {
  try {
    const file = openSync(path, 'wx')
    writeSync(file, String(process.pid))
    closeSync(file)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    if (!isHeld(path)) rmSync(path, { force: true })
    return false
  }
}

function isHeld(path) {
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

async function makeReady() {
  checkNode()
  checkPython()
  if (!areDependenciesInstalled() || !isBuilt()) {
    await alone(async () => {
      if (!areDependenciesInstalled()) await installDependencies()
      await build(say)
    })
  }
  if (flags.includes('--test')) await getServers()
}

/** Obtains the servers for the tests; each takes minutes the first time. */
async function getServers() {
  const require = createRequire(import.meta.url)
  const { resolveExecutable } = require('../dist/cli/dev/temporal/resolve.js')
  const { resolveVersitygw } = require('../dist/cli/dev/versitygw/resolve.js')
  const { progressOn } = require('../dist/cli/dev/temporal/progress.js')
  const options = {
    home: process.env.CRUCIBLE_HOME ?? join(homedir(), '.crucible'),
    env: process.env,
    progress: progressOn(process.stderr, Date.now),
  }
  const { version, path } = await resolveExecutable(options)
  say(`Temporal ${version}: ${path}`)
  say(`S3 server: ${await resolveVersitygw(options)}`)
  const clients = await getAwsClients(options.home, say)
  if (clients !== undefined) say(`AWS clients: ${clients}`)
  const modal = await getModalClients(options.home, say)
  if (modal !== undefined) say(`Modal's client: ${modal}`)
  const lambda = await getLambdaClients(options.home, say)
  if (lambda !== undefined) say(`Lambda's client: ${lambda}`)
  const python = await getPythonPackages(options.home, say)
  if (python !== undefined) say(`Tools of the Python packages: ${python}`)
}

/** Returns the exit code: whether the checkout is ready. Required actions of a person are printed on stderr. */
export async function setUp() {
  try {
    await makeReady()
    return true
  } catch (error) {
    const isReadOnly = ['EACCES', 'EROFS', 'EPERM'].includes(error.code)
    const remedy = isReadOnly ? `\nSet-up writes to ${ROOT}: make it writable, or use a copy that is.` : ''
    process.stderr.write(`${error.message}${remedy}\n`)
    process.exitCode = 1
    return false
  }
}

if (isProgram) await setUp()
