/** Functions that a command line needs before it loads anything else. */
export { replaceAws, simulatedIn, withDevEnvironment } from '../storage/home'
