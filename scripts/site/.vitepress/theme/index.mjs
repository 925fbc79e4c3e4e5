import theme from "vitepress/theme-without-fonts";
import "@fontsource-variable/inter";
import "./style.css";

export default theme;
