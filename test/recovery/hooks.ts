import { afterAll, beforeAll } from '@jest/globals'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { CloudDeployment, type DeploymentWishes } from './deployment'

/** One deployment for all tests of a file, given to `use` before the first of them. */
export function onDeployment(wishes: DeploymentWishes, use: (deployment: CloudDeployment) => void): void {
  let at: TestConnection | undefined
  let deployment: CloudDeployment | undefined
  beforeAll(async () => {
    quietWorkers()
    at = await connectTo()
    deployment = await CloudDeployment.start(at, wishes)
    use(deployment)
  })
  afterAll(async () => {
    await deployment?.stop()
    await at?.close()
  })
}
