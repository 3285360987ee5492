import { describe, expect, it } from '@jest/globals'
import { join } from 'node:path'
import { useWorlds } from './world'

const createWorld = useWorlds()

/** Saves absolute paths of its working and checkpoint directories, and compares them when it resumes. */
const PATHS = `
import json, os
folder = os.environ["CRUCIBLE_CHECKPOINT_DIR"]
here = {"cwd": os.getcwd(), "real": os.path.realpath(folder), "output": os.environ["CRUCIBLE_OUTPUT_DIR"]}
resume = os.environ.get("CRUCIBLE_RESUME_FROM")
if resume:
    print("same" if json.load(open(resume)) == here else "other", os.path.isfile(json.load(open(resume))["real"] + "/step-1.json"))
else:
    json.dump(here, open(folder + "/step-1.json", "w"))
`

describe('the directory of a job', () => {
  it('has one path for all attempts, also after links are resolved', async () => {
    const world = createWorld()
    const bundle = await world.bundle({ 'train.py': PATHS })
    const jobRoot = join(world.folder, 'jobs', 'train')
    const first = await world.launch({ bundle, run: 'python3 train.py' }, '--job-root', jobRoot)
    expect(await first.end()).toMatchObject({ outcome: 'succeeded' })
    const next = await world.launch({ attempt: 2, bundle, run: 'python3 train.py' }, '--job-root', jobRoot)
    expect(await next.end()).toMatchObject({ outcome: 'succeeded' })
    expect(await next.output()).toEqual(['same True'])
    expect(next.root).not.toBe(first.root)
  })
})
