import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { connectTo, quietWorkers, TEST_SERVER_VARIABLE, type TestConnection } from '../support/temporal'

/** With a Temporal server for workers of this process. */
export function withServer<R>(use: () => Promise<R>): Promise<R> {
  quietWorkers()
  return withServerOnly(use)
}

/**
 * With a Temporal server: the one that Jest has started, or one of its own. No worker of this process uses it: the SDK's runtime, once it is
 * installed, is only released with the last connection of a worker.
 */
export async function withServerOnly<R>(use: () => Promise<R>): Promise<R> {
  if (process.env[TEST_SERVER_VARIABLE] !== undefined) return use()
  await setUp()
  try {
    return await use()
  } finally {
    await tearDown()
  }
}

export function withConnection<R>(use: (at: TestConnection) => Promise<R>): Promise<R> {
  return withServer(async () => {
    const at = await connectTo()
    try {
      return await use(at)
    } finally {
      await at.close()
    }
  })
}
