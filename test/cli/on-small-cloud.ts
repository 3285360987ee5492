import type { Connection } from '@temporalio/client'
import { createClient, readClientConfig, type Crucible } from '../../client'
import { homeOf, readDevNote } from '../../storage/home'
import { operatorOf } from '../support/cloud-keys'
import { freshNamespace } from '../support/namespace'
import { testVersitygw } from '../support/s3'
import { connectTo, testServer } from '../support/temporal'
import { join } from 'node:path'
import { build, CommandLine, type Running } from './process'

/** `crucible dev --sim` in a folder, with the command line and a client of its deployment. */
export interface OnSmallCloud {
  crucible: CommandLine
  client: Crucible
  dev: Running
  /** Of the small cloud. */
  url: string
  /** Asks the operator's endpoint of the small cloud: `instances`. */
  ask: (door: string) => Promise<unknown>
  close: () => Promise<void>
}

/** Starts it at the shared Temporal server, in a namespace of its own. The folder is removed when it is closed. */
export async function startOnSmallCloud(
  folder: string,
  { sim = ['--sim'], settings = {} }: { sim?: readonly string[]; settings?: Record<string, string> } = {},
): Promise<OnSmallCloud> {
  build()
  const at = await connectTo()
  const environment = {
    CRUCIBLE_HOME: join(folder, 'home'),
    CRUCIBLE_VERSITYGW: await testVersitygw(),
    TEMPORAL_ADDRESS: testServer().address,
    TEMPORAL_NAMESPACE: await freshNamespace(at.client.connection as Connection),
    ...settings,
  }
  await at.close()
  const crucible = new CommandLine(environment, folder)
  try {
    const dev = await crucible.ready('dev', ...sim)
    const client = createClient(readClientConfig(environment))
    const close = async (): Promise<void> => {
      await client.close()
      await crucible.close()
    }
    const { cloud } = readDevNote(homeOf(environment))!
    const ask = async (door: string): Promise<unknown> =>
      (await fetch(`${cloud!.url}/_sim/${door}`, { headers: operatorOf(cloud!) })).json()
    return { crucible, client, dev, url: cloud!.url, ask, close }
  } catch (error) {
    await crucible.close()
    throw error
  }
}
