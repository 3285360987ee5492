/**
 * Records the golden histories: `npm run record-histories [-- NAME...]` plays the scenarios named, or those without a history
 * yet, on a real server. A history that is there stays: it stands for the jobs that run while a new version is installed.
 */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { historyToJSON } from '@temporalio/common/lib/proto-utils'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers } from '../support/temporal'
import { Deployment } from '../workflows/harness'
import { SCENARIOS } from './scenarios'

const ROOT = join(__dirname, '..', '..')
/** Raised when workflows change in a way that old histories cannot follow without `patched()`. */
const VERSION = 'v1'

async function main(): Promise<void> {
  const names = process.argv.slice(1).filter((argument) => SCENARIOS.some(({ name }) => name === argument))
  const fileOf = (name: string): string => join(__dirname, 'histories', `${name}.${VERSION}.json`)
  const wanted = SCENARIOS.filter(({ name }) =>
    names.length > 0 ? names.includes(name) : !existsSync(fileOf(name)),
  )
  await setUp()
  quietWorkers()
  const at = await connectTo()
  try {
    for (const { name, wishes, play } of wanted) {
      process.stdout.write(`${name}\n`)
      const deployment = await Deployment.start(at, wishes)
      try {
        const workflowId = await play(deployment)
        const history = await deployment.client.workflow.getHandle(workflowId).fetchHistory()
        // Stack traces name the place where they were recorded.
        await writeFile(fileOf(name), historyToJSON(history).replaceAll(ROOT, ''))
      } finally {
        await deployment.close()
      }
    }
  } finally {
    await at.close()
    await tearDown()
  }
}

void main()
