import { describe, expect, it } from '@jest/globals'
import { createHash, createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { layout } from '../../storage/layout'
import { attemptKey, formatKey, sealSecrets } from '../../storage/secrets'
import { JOB, useWorlds, type Machine, type World } from './world'

const createWorld = useWorlds()

const KEY = 'the-key-that-signs-a-result'
const VALUE = 'crucible-function-result/value'
const SIGNATURE = 'crucible-function-result/signature'

/** A program that looks for a text in the environments, arguments and open files of all processes that it may read. */
const SEARCH = `import glob, os
found = []
for path in glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/fd/*") + glob.glob(os.environ["CRUCIBLE_MACHINE_DIR"] + "/**", recursive=True):
    if path.startswith("/proc") and path.split("/")[3] not in ("environ", "cmdline", "fd"):
        continue
    try:
        kind = os.stat(path).st_mode
        if os.path.isfile(path) and b"that-signs-a-result" in open(path, "rb").read(1 << 20):
            found.append(path)
    except OSError:
        pass
print("found", [path for path in found if not path.endswith("search.py")])
`

async function launch(world: World, run: string): Promise<Machine> {
  const key = Buffer.alloc(32, 7)
  const values = { TOKEN: 'another-secret', FUNCTION_RESULT_SIGNING_KEY: KEY }
  const sealed = sealSecrets(attemptKey(key, `${JOB}-1`), values, Buffer.alloc(16, 1))
  await world.store.put(layout.attemptSecrets(JOB, 1), sealed)
  const path = join(world.folder, 'secret.key')
  writeFileSync(path, formatKey(attemptKey(key, `${JOB}-1`)), { mode: 0o600 })
  const bundle = await world.bundle({ 'search.py': SEARCH })
  return world.launch({ bundle, run, secrets: Object.keys(values) }, '--secret-key-file', path)
}

function signatureOf(value: string): string {
  const digest = createHash('sha256').update(value).digest('hex')
  return createHmac('sha256', KEY).update(`crucible-function-result\n1\n${digest}`).digest('hex')
}

describe('the key that signs the result of a function', () => {
  it('is in no process and in no file that a program of the job can read', async () => {
    const world = createWorld()
    const machine = await launch(
      world,
      `printenv TOKEN | wc -c; printenv FUNCTION_RESULT_SIGNING_KEY || echo unset
       CRUCIBLE_MACHINE_DIR="$(cd "$CRUCIBLE_OUTPUT_DIR/.." && pwd)" python3 search.py`,
    )
    expect(await machine.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await machine.output()).toEqual(['15', 'unset', 'found []'])
  })

  it('signs the value, in place of any signature that a program of the job has left', async () => {
    const world = createWorld()
    const folder = '"$CRUCIBLE_OUTPUT_DIR/crucible-function-result"'
    const machine = await launch(
      world,
      `mkdir ${folder}; cd ${folder}; printf value > value; echo forged > signature`,
    )
    const { artifacts } = await machine.end()
    expect(artifacts.map(({ path }) => path).sort()).toEqual([SIGNATURE, VALUE])
    expect(await world.artifact(SIGNATURE)).toBe(signatureOf('value'))
    expect(artifacts.find(({ path }) => path === SIGNATURE)!.sha256).toBe(
      createHash('sha256').update(signatureOf('value')).digest('hex'),
    )
  })

  it('signs nothing for a job that keeps no value', async () => {
    const machine = await launch(createWorld(), 'echo a > "$CRUCIBLE_OUTPUT_DIR/a.txt"')
    const { artifacts } = await machine.end()
    expect(artifacts.map(({ path }) => path)).toEqual(['a.txt'])
  })
})
