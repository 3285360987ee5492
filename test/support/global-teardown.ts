import type { DevServer } from '../../cli/dev/temporal/dev-server'

async function tearDown(): Promise<void> {
  await (globalThis as { crucibleTestServer?: DevServer }).crucibleTestServer?.stop()
}

export = tearDown
